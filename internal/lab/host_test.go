package lab

import (
	"testing"

	"skerry/internal/machine/host/hosttest"
)

// A node of a lab that is up is asked as every other host is.
func TestHostsKeepTheContract(t *testing.T) {
	hosttest.Run(t, mustUp(t, config(t, "contract")).Hosts()[0])
}
