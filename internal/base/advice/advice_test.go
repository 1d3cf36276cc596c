package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestWithText(t *testing.T) {
	err := WithText("there is no such thing", fs.ErrNotExist)
	if err.Error() != "there is no such thing" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if wrapped := fmt.Errorf("looking: %w", err); !errors.Is(wrapped, fs.ErrNotExist) || errors.Is(wrapped, fs.ErrExist) {
		t.Errorf("%v", wrapped)
	}
	if plain := WithText("whatever", nil); plain.Error() != "whatever" || errors.Unwrap(plain) != nil {
		t.Errorf("%v", plain)
	}
}
