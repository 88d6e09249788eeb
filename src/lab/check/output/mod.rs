//! Reports in the formats of continuous integration, and the baseline file.

