// Package rootless runs skerry inside a user namespace, where a user who is not root
// is root of namespaces of their own: enough to make network namespaces and devices, not
// enough for control groups or real-time priority.
package rootless

import "os"

// variable tells a process that it is inside.
const variable = "SKERRY_ROOTLESS"

// Inside tells whether this process was started by Enter or Join.
func Inside() bool { return os.Getenv(variable) != "" }
