//! The offline model against simulated tools.

mod limits;
mod odd;
mod runs;
mod simulation;

/// Three small documents.
const TIDES: &[(&str, &str)] = &[
    (
        "moon.md",
        "# The moon\n\nThe moon pulls at the water of the sea, and the water\nfollows it around the earth. It has no air.\n",
    ),
    ("sea/tides.md", "# Tides\n\n- A spring tide comes when the sun and the moon pull the same way.\n- Short one.\n"),
    ("sun.md", "# The sun\n\nThe sun pulls at the sea as well, though less than half as much.\n"),
];
