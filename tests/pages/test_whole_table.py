"""A table that is read whole: text stays literal, an empty column goes, no rows are no table."""

from streamlit.testing.v1 import AppTest


def shown() -> None:
    from ui.whole_table import whole_table

    whole_table([], "Nothing")
    whole_table([{"Flag": "-c", "Note": "*all*", "Also": ""}, {"Flag": "-b", "Note": None, "Also": ""}], "Flags")


def test_text_is_literal_and_what_no_row_has_is_no_column() -> None:
    app = AppTest.from_function(shown).run()
    assert not app.exception
    (table,) = (t.value for t in app.table)
    assert (list(table.columns), list(table.index)) == (["Note"], ["-c", "-b"])
    assert list(table["Note"]) == [r"\*all\*", ""]
