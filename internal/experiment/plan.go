package experiment

// Cell is one planned trial: one combination of the matrix, in one repetition.
type Cell struct {
	// ID is from 1 in the order of the file: all cells of the first repetition in matrix
	// order (the last axis fastest), then those of the second. It does not change with the seed.
	ID int `json:"id"`
	// Repetition is from 1.
	Repetition int `json:"repetition"`
	// Parameters are what tells this cell from others: database, workload and scale
	// always, and every axis of the matrix under its path. Values are strings, numbers, booleans.
	Parameters map[string]any `json:"parameters"`
	// Axes are the keys of Parameters in the order to show them.
	Axes []string `json:"axes"`
	// Seed of everything random in this trial: see TrialSeed.
	Seed uint64 `json:"seed"`
	// Experiment is what this trial runs: the file with the cell's values put in.
	Experiment Experiment `json:"-"`
}
