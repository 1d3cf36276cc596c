package executor

import (
	"fmt"
	"testing"
)

func TestIndexes(t *testing.T) {
	for text, want := range map[string]string{
		"7": "[7]", "[3,9-11%3]": "[3 9 10 11]", "3,9-11": "[3 9 10 11]", "N/A": "[]", "1-x": "[]",
	} {
		if got := fmt.Sprint(ParseIndexes(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
