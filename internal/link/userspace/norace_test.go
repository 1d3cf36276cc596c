//go:build !race

package userspace_test

const raced = ""
