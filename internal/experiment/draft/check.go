package draft

import (
	"fmt"
	"strings"

	"skerry/internal/database"
	"skerry/internal/experiment"
)

// Check makes the file of a draft and validates it as a file at path. The error is the first
// thing that is wrong, without the line of a file that nobody has seen yet.
func Check(d Draft, path string, databases map[string]database.Database) (text string, v experiment.Validation, err error) {
	if text, err = d.YAML(); err != nil {
		return "", v, err
	}
	v = experiment.ValidateText(path, []byte(text), databases)
	if !v.Valid {
		p := v.Problems[0]
		return text, v, fmt.Errorf("%w: %s", ErrAnswer, strings.TrimSuffix(p.Message+"; "+p.Hint, "; "))
	}
	return text, v, nil
}
