// Package plan is what package vm tells the init of its machine to do.
package plan

// Path is where init finds the Plan, as JSON.
const Path = "/plan.json"

// Plan is carried out from top to bottom.
type Plan struct {
	Modules  []string // files, each after those it depends on
	Programs []Program
}

// Program is run to its end; then init prints EndMark, its Name and how it ended.
type Program struct {
	Name, Path, EndMark string
	Args, Env           []string
}
