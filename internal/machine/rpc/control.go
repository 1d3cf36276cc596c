package rpc

import "skerry/internal/kernel/cgroup"

// What is done to a node, as host.Controls has it.
const (
	Freeze    = "freeze"
	Thaw      = "thaw"
	MountDisk = "mount disk"
	FillDisk  = "fill disk"
	FreeDisk  = "free disk"
	LimitDisk = "limit disk"
	LimitCPU  = "limit CPU"
)

// Control has something done to a node.
type Control struct {
	Do    string           `json:"do"`
	Bytes int64            `json:"bytes,omitempty"`
	Disk  cgroup.DiskLimit `json:"disk,omitzero"`
	Cores float64          `json:"cores,omitempty"`
}
