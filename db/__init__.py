"""Tables, migrations, and one store per aggregate. Values go in and come out; no row object leaves this room."""
