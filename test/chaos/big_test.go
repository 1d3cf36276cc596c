package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// bigEvery is the interval between two operations on rows of the maximum size.
const bigEvery = 200 * time.Millisecond

// largest returns a row of the maximum size, filled with a letter.
func largest(letter byte) map[string]string {
	return map[string]string{"text": strings.Repeat(string(letter), command.MaxValue-len(`{"text":""}`))}
}

// weigh writes and reads rows of 1 MiB, one at a time. Each read must return the last acknowledged row, or one with an
// unknown outcome.
func (k *work) weigh(ctx context.Context, r *rand.Rand, key string, c *hydraclient.Client) {
	may := map[byte]bool{0: true} // possible contents of the row, 0 for no row
	doubt := map[byte]bool{}
	for n := 0; ctx.Err() == nil; n++ {
		if letter := byte('a' + n%26); r.IntN(2) == 0 && !doubt[letter] {
			switch _, err := c.Put(k.w.t.Context(), "big", key, largest(letter)); {
			case err == nil:
				may = map[byte]bool{letter: true}
				k.big.Add(1)
			case errors.Is(err, hydraclient.ErrInDoubt), errors.Is(err, hydraclient.ErrNotReached):
				doubt[letter] = true // permanently: it may be applied after later writes
			}
		} else if got, err := k.large(c, key); err == nil {
			if !may[got] && !doubt[got] {
				k.w.t.Errorf("%s is of %q, which is not one of %v or %v", key, got, may, doubt)
			}
		}
		time.Sleep(bigEvery)
	}
}

// large returns the letter of a row.
func (k *work) large(c *hydraclient.Client, key string) (byte, error) {
	row, err := c.Get(k.w.t.Context(), "big", key)
	if errors.Is(err, hydraclient.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var v struct{ Text string }
	if err := json.Unmarshal(row.Value, &v); err != nil {
		return 0, err
	}
	if len(row.Value) != command.MaxValue || strings.Trim(v.Text, v.Text[:1]) != "" {
		k.w.t.Errorf("%s has %d bytes of different letters", key, len(row.Value))
		return 0, fmt.Errorf("%s is damaged", key)
	}
	return v.Text[0], nil
}
