package record

import "slices"

// Task is the part of a plan that is run in one place, in one go: trials that share a lab, else
// a single one.
type Task struct {
	// ID is that of its trials (Planned.Task).
	ID int
	// Trials are in the order of running.
	Trials []Planned
}

// Tasks cuts trials, of a whole plan or what is left of one, into tasks, in their order.
func Tasks(trials []Planned) []Task {
	var all []Task
	at := make(map[int]int, len(trials))
	for _, p := range trials {
		if p.Task == 0 { // a run from before tasks
			all = append(all, Task{ID: p.ID, Trials: []Planned{p}})
			continue
		}
		i, known := at[p.Task]
		if !known {
			i = len(all)
			at[p.Task] = i
			all = append(all, Task{ID: p.Task})
		}
		all[i].Trials = append(all[i].Trials, p)
	}
	return all
}

// IDs are the trials of the task.
func (t Task) IDs() []int {
	ids := make([]int, len(t.Trials))
	for i, p := range t.Trials {
		ids[i] = p.ID
	}
	return ids
}

// find is the planned trial of that id.
func find(plan []Planned, id int) (Planned, error) {
	i := slices.IndexFunc(plan, func(p Planned) bool { return p.ID == id })
	if i < 0 {
		return Planned{}, ErrNoTrial
	}
	return plan[i], nil
}
