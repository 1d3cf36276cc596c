//go:build race

package userspace_test

const raced = "with the race detector, the delay between two emulators exceeds the latency of the links"
