"""write_csv.py - writes the tables of questions, each below a row with its columns.

The first column of each row is the question. Between two tables there is an empty row.
"""

import csv
import io

from . import as_json


def write(recording, file):
    text = io.StringIO()
    rows = csv.writer(text)
    for i, table in enumerate(as_json.tables(recording)):
        if i:
            rows.writerow([])
        rows.writerow(["question", *table["columns"]])
        rows.writerows([table["table"], *row] for row in table["rows"])
    file.write(text.getvalue().encode())
