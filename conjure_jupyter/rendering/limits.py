"""How much a rendering may take. What is over a limit is refused, or left out and told."""

from __future__ import annotations

MB = 1024 * 1024

#: Bytes of a document.
DOCUMENT = 5 * MB
#: Pages or slides.
PAGES = 200
#: Pages that become PNG images.
PNG_PAGES = 20
#: Bytes of one image, stylesheet or font, and of all of them together.
RESOURCE, ALL_RESOURCES = 20 * MB, 100 * MB
#: Images, stylesheets and fonts that are asked for.
RESOURCES = 300
#: Pixels of one image, and of all of them together: an image of few bytes can have billions.
PIXELS, ALL_PIXELS = 40_000_000, 200_000_000
#: Pixels of a page as a PNG image.
PAGE_PIXELS = 25_000_000
#: Bytes of all that a rendering gives.
OUTPUT = 100 * MB
#: Seconds, and bytes of address space, of the process that renders.
SECONDS = 60.0
MEMORY = 2048 * MB
#: Things left out that are told one by one.
TOLD = 10
