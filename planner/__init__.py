"""The pure domain: data in, data out. No streamlit, no SQL, no network, no clock."""
