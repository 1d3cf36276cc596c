//go:build race

package userspace_test

const raced = "the race detector makes the way between two emulators longer than the links"
