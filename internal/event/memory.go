package event

import (
	"math/rand/v2"
	"strconv"

	"skerry/internal/unit"
)

// Memory takes memory of nodes and keeps it. Within a node's limit it leaves less for the
// page cache and the database; where there is not enough, the kernel ends this process
// first, and the event has failed.
type Memory struct {
	Nodes `yaml:",inline"`
	// Size is how much of each node. The machine keeps 512 MiB whatever is asked for.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"required,example=1GiB"`
}

func (m *Memory) check(s Stage, fail failure) {
	m.Nodes.resolve(s, fail)
	if m.Size == 0 {
		fail("size", "write 1GiB", "no memory is no event")
	}
}

func (m *Memory) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newHogs(m.Nodes.draw(s, turn, busy, r), m.Size.String()+" of memory of %s taken", "memory", strconv.FormatInt(int64(m.Size), 10))
}
