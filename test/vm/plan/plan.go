// Package plan is the task that package vm gives to the init of its machine.
package plan

// Path is where init finds the Plan, as JSON.
const Path = "/plan.json"

// Plan is executed from top to bottom.
type Plan struct {
	Modules  []string // files, each after those it depends on
	Programs []Program
}

// Program runs to its end; then init prints EndMark, its Name and its exit status.
type Program struct {
	Name, Path, EndMark string
	Args, Env           []string
}
