package executor

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Folder is where in a run directory an engine's files are: scripts, task files, what tasks said.
const Folder = "engine"

// TokenFile is the file of a run directory that tells it from another one.
const TokenFile = Folder + "/token"

// NotShared is how a task's program ends where the run directory is not the one of the sweep.
const NotShared = 77

// TaskVariable is the environment variable that tells a worker what its engine calls its task.
const TaskVariable = "SKERRY_TASK"

// MachineVariable is the environment variable that tells a worker the name of its machine, where the worker sees another
// one: a pod's own in place of its node's.
const MachineVariable = "SKERRY_MACHINE"

// Printed ends the name of a file that holds a batch as it was printed.
const Printed = ".printed"

// Path is a file of the batch below Folder.
func (b Batch) Path(suffix string) string {
	return filepath.Join(b.Dir, Folder, fmt.Sprintf("%d%s", b.Number, suffix))
}

// Name is the batch's own among all batches of all runs, of letters, digits and "-".
func (b Batch) Name() string {
	return fmt.Sprintf("skerry-%s-%d", strings.ToLower(b.Token[:min(len(b.Token), 10)]), b.Number)
}

// Indexes are the elements of an array that an engine names: "7", or "3,9-120", also as Slurm has those that wait: "[3,9-120%3]".
func Indexes(text string) []int {
	text, _, _ = strings.Cut(strings.Trim(text, "[]"), "%")
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for i := first; i <= last; i++ {
			all = append(all, i)
		}
	}
	return all
}
