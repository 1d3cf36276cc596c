package event

import (
	"math/rand/v2"
	"strconv"

	"skerry/internal/base/unit"
	"skerry/internal/record"
)

var memoryKind = Kind{
	Name: "memory", Summary: "takes memory of nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, size: 1GiB}`},
		Text: `a process takes the memory and keeps it. If the node has less, the kernel ends this process first, and the event has failed. The machine keeps 512 MiB`}}},
	newSpec: func() kindSpec { return new(Memory) },
}

// Memory takes memory of nodes and keeps it. Within a node's limit it leaves less for the
// page cache and the database; where there is not enough, the kernel ends this process
// first, and the event has failed.
type Memory struct {
	NodeSelector `yaml:",inline"`
	// Size is how much of each node. The machine keeps 512 MiB whatever is asked for.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"required,example=1GiB"`
}

func (m *Memory) check(s Layout, fail failure) {
	m.NodeSelector.resolve(s, fail)
	if m.Size == 0 {
		fail("size", "write 1GiB", "no memory is no event")
	}
}

func (m *Memory) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newStressAction(m.NodeSelector.draw(s, turn, busy, r), m.Size.String()+" of memory of %s taken", "memory", strconv.FormatInt(int64(m.Size), 10))
}
