package live

import "time"

// Tasks are how the tasks of a run on an engine stand.
type Tasks struct {
	On string `json:"on"` // the engine
	// Counts of tasks: not handed over yet or waiting for a machine, running, with all their results.
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Done    int `json:"done"`
	// Trials whose result is suspect, and those that measured nothing.
	Suspect int `json:"suspect"`
	Failed  int `json:"failed"`
	// Lost counts the times that a task ended without its results and was handed over again, or given up.
	Lost int `json:"lost"`
	// LeftS is about how long the rest takes, 0 where nobody knows.
	LeftS float64 `json:"left_s,omitempty"`
	// At are the tasks that run, maxTasksAt at most; Troubles the last things that went wrong with others.
	At       []TaskAt  `json:"at"`
	Troubles []Trouble `json:"troubles"`
}

// TaskAt is a task that runs somewhere.
type TaskAt struct {
	Task   int       `json:"task"`
	Trials []int     `json:"trials"`
	Where  string    `json:"where"`
	Since  time.Time `json:"since"` // when it was first seen there
}

// Trouble is a task that ended without its results.
type Trouble struct {
	Task  int       `json:"task"`
	State string    `json:"state"` // cancelled, preempted, timed out, lost, failed
	Where string    `json:"where,omitempty"`
	Why   string    `json:"why"`
	At    time.Time `json:"at"`
	Again bool      `json:"again"` // it was handed over again
}

// Tasks tells how the tasks stand.
func (f *Feed) Tasks(t Tasks) {
	f.tell(KindTasks, func(s *State) { s.Tasks = &t }, func(*State) any { return t })
}
