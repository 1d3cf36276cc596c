package runner

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ParseOnly reads which trials are asked for: "17", "3,5-8", or "@FILE" for those of a file, a
// list in each line, and "@FILE:2" for its second line.
func ParseOnly(text string) ([]int, error) {
	if file, ok := strings.CutPrefix(text, "@"); ok {
		return onlyInFile(file)
	}
	var ids []int
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 1 || last < first || last-first > 1_000_000 {
			return nil, fmt.Errorf("%w: %q names no trials: write 17, or 3,5-8", ErrSource, part)
		}
		for id := first; id <= last; id++ {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: %q names no trials: write 17, or 3,5-8", ErrSource, text)
	}
	return ids, nil
}

func onlyInFile(file string) ([]int, error) {
	text, err := os.ReadFile(file)
	line := 0
	if err != nil {
		if name, n, ok := strings.Cut(file, ":"); ok {
			if line, err = strconv.Atoi(n); err != nil || line < 1 {
				return nil, fmt.Errorf("%w: %q is no line of a task file; the first one is 1", ErrSource, n)
			}
			text, err = os.ReadFile(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: reading the task file: %w", ErrSource, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if line > len(lines) {
		return nil, fmt.Errorf("%w: the task file %s has %d lines, and line %d is asked for", ErrSource, file, len(lines), line)
	}
	if line > 0 {
		lines = lines[line-1 : line]
	}
	return ParseOnly(strings.Join(lines, ","))
}
