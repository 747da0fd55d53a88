"""write_csv.py - writes the tables of questions, each below a row with its columns.

The first columns of each row are the question, and the answer of it that the table is.
Between two tables there is an empty row.
"""

import csv
import io

from . import as_json


def write(recording, file):
    text = io.StringIO()
    rows = csv.writer(text)
    for i, table in enumerate(as_json.tables(recording, recording.tables)):
        if i:
            rows.writerow([])
        rows.writerow(["question", "answer", *table["columns"]])
        rows.writerows([table["table"], table["answer"], *row] for row in table["rows"])
    file.write(text.getvalue().encode())
