package event

import (
	"math/rand/v2"
)

// kill ends the database's processes on nodes with SIGKILL.
type kill Nodes

func (k *kill) check(s Stage, fail failure) { Nodes(*k).members(s, fail, "killed") }

func (k *kill) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newOnNodes(onNodes{nodes: Nodes(*k).draw(s, turn, busy, r), text: "%s killed", do: halting(abrupt), undo: reviving})
}

func (e *kill) limit(s Stage) int { return Nodes(*e).limit(s) }
