"""The cold-start factory: dialogues made, verified twice, selected, exported."""
