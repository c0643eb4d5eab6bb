"""tau-bench (TAU1) and tau2-bench (TAU2): retail, airline, telecom, mock."""
