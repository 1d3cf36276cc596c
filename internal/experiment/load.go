package experiment

// origin is where an experiment came from, for messages about it.
type origin struct {
	file string
}
