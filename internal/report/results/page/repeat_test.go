package page

import (
	"strings"
	"testing"
)

func TestRepeated(t *testing.T) {
	const template = `| of | trials |
|---|---|
<!-- repeat STEP | NAME
redis | Redis
ndb | MySQL's NDB
-->
| NAME | <!-- trials STEP --> |
<!-- end repeat -->

After.
`
	const want = `| of | trials |
|---|---|
| Redis | <!-- trials redis --> |
| MySQL's NDB | <!-- trials ndb --> |

After.
`
	if got := repeated(template); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A line of too few words, and an end that is missing, are told, and nothing is put together of what is there.
func TestRepeatedIsToldOfWhatIsWrong(t *testing.T) {
	for name, template := range map[string]string{
		"a word is missing": "<!-- repeat STEP | NAME\nredis\n-->\nNAME\n<!-- end repeat -->\n",
		"no end":            "<!-- repeat STEP | NAME\nredis | Redis\n-->\nNAME\n",
	} {
		if _, err := Fill("p", []byte(template), nil); err == nil || !strings.Contains(err.Error(), "repeat") {
			t.Errorf("%s: %v, want an error that says repeat", name, err)
		}
	}
}
