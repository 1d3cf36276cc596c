package engine

import (
	"fmt"
	"path/filepath"
)

// Folder is where in a run directory an engine's files are: scripts, task files, what tasks said.
const Folder = "engine"

// TokenFile is the file of a run directory that tells it from another one.
const TokenFile = Folder + "/token"

// NotShared is how a task's program ends where the run directory is not the one of the sweep.
const NotShared = 77

// TaskVariable is the environment variable that tells a worker what its engine calls its task.
const TaskVariable = "SKERRY_TASK"

// Path is a file of the batch below Folder.
func (b Batch) Path(suffix string) string {
	return filepath.Join(b.Dir, Folder, fmt.Sprintf("%d%s", b.Number, suffix))
}
