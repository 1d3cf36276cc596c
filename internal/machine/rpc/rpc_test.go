package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
)

func TestErrorsKeepTheirIdentity(t *testing.T) {
	err := advice.With(fmt.Errorf("make: %w: %w", machine.ErrExists, &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}), "go away")
	text, e := json.Marshal(NewFailure(err))
	if e != nil {
		t.Fatal(e)
	}
	var f *Failure
	if e := json.Unmarshal(text, &f); e != nil {
		t.Fatal(e)
	}
	got := f.Err()
	for _, want := range []error{machine.ErrExists, fs.ErrPermission, syscall.EACCES} {
		if !errors.Is(got, want) {
			t.Errorf("%v is not %v", got, want)
		}
	}
	if got.Error() != err.Error() || advice.Of(got) != "go away" || errors.Is(got, fs.ErrNotExist) {
		t.Errorf("%v, %s", got, advice.Of(got))
	}
	if NewFailure(nil) != nil || (*Failure)(nil).Err() != nil {
		t.Error("nil error")
	}
	if err := (&Failure{Text: "new", Is: []string{"of a later version"}}).Err(); err.Error() != "new" {
		t.Errorf("%v", err)
	}
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	f := NewFrames(&b, func() error { return nil })
	long := bytes.Repeat([]byte("x"), maxFrame+1)
	if _, err := f.Writer(Out).Write(long); err != nil {
		t.Fatal(err)
	}
	if err := f.Send(Ended, nil); err != nil {
		t.Fatal(err)
	}
	var got []int
	for {
		k, data, err := ReadFrame(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, len(data)); k == Ended {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint([]int{maxFrame, 1, 0}) {
		t.Errorf("frames of %v bytes", got)
	}
	if _, _, err := ReadFrame(bytes.NewReader([]byte{1, 255, 255, 255, 255})); err == nil {
		t.Error("a frame of 4 GiB was accepted")
	}
}
