package tunnel

import (
	"errors"
	"net"
	"testing"
)

// A port that another socket is about to release is retried; other errors are returned immediately.
func TestRetryPortInUse(t *testing.T) {
	holder, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	tries := 0
	err = retryPortInUse(func() error {
		if tries++; tries == 3 {
			holder.Close()
		}
		c, err := net.ListenPacket("udp4", holder.LocalAddr().String())
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	tries = 0
	other := errors.New("no device")
	if err := retryPortInUse(func() error { tries++; return other }); !errors.Is(err, other) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
