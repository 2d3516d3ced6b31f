"""Words by which names of placeholders, flags and skills are understood."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Names of what a command makes.
OUT = _words("out output outputs outfile outdir dest destination result results target save export")

#: Names of folders.
FOLDER = _words("dir directory folder dirname outdir indir")

#: Names of files that a command reads.
FILE = _words(
    """archive csv data dataset doc document docx excel file filename filepath files html image img in
    infile input inputs json log logs markdown md path paths pdf photo pptx sheet source spreadsheet
    src table tsv txt workbook xlsx xml yaml zip"""
)

#: Names of values that are neither files nor free text.
OTHER = _words(
    """arg args col color colour column columns count date encoding factor field fields format group height
    id key keyword lang language level limit metric mode model n name num number option options page
    pages pattern percent rate regex scale seconds size sort style threshold title top type unit url
    user value values width year"""
)

#: Names of free text.
TEXT = _words("text query prompt question message sentence string words topic")

#: Names that ask for as many files as there are.
SEVERAL = _words("files inputs paths")

#: Words of skills and of requests that say nothing of what a task is about.
STOP = _words(
    """a about all an and any are as at be by can claude do does each every file files following for from
    give given get has have help helper how i if in into is it its like make me more my need needs
    new of on one or our out please run show skill skills so some such task tasks tell than that the
    their them then there these they this to up use used user users using want was what when where
    which while who why will with work working you your"""
)
