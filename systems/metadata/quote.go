package metadata

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote writes a word so that Parse reads it back: as it is where it can be, else in
// double quotes with \n, \t, \", \\ and \xHH.
func Quote(word string) string {
	if isPlain(word) {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(word); {
		r, size := utf8.DecodeRuneInString(word[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && size == 1 || unicode.IsControl(r):
			for _, c := range []byte(word[i : i+size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteRune(r)
		}
		i += size
	}
	b.WriteByte('"')
	return b.String()
}

// isPlain tells whether a word needs no quotes.
func isPlain(word string) bool {
	if word == "" || word[0] == '-' || word[0] == '#' {
		return false
	}
	for _, r := range word {
		switch {
		case r == ' ' || r == '"' || r == '\'' || r == '\\' || r == utf8.RuneError || unicode.IsControl(r):
			return false
		}
	}
	return true
}

// cutWord cuts the first word from a line: up to a space outside of quotes. 'TEXT' is taken
// as it is, in "TEXT" and outside of quotes a backslash escapes. found is false at the end
// of the line.
func cutWord(line string) (w, rest string, found bool, err error) {
	line = strings.TrimLeft(line, " \t")
	if line == "" {
		return "", "", false, nil
	}
	for i := range len(line) {
		switch line[i] {
		case ' ', '\t':
			return line[:i], line[i:], true, nil
		case '"', '\'', '\\':
			w, rest, err = cutQuoted(line)
			return w, rest, true, err
		}
	}
	return line, "", true, nil
}

// cutQuoted is word where there are quotes or backslashes.
func cutQuoted(line string) (w, rest string, err error) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			return b.String(), line[i:], nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'' || c != '\\':
			b.WriteByte(c)
		default:
			n, err := writeEscape(&b, line[i+1:])
			if err != nil {
				return "", "", err
			}
			i += n
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("%w command: %c without its end", ErrInvalid, quote)
	}
	return b.String(), "", nil
}

// writeEscape writes what stands behind a backslash, and tells its length.
func writeEscape(b *strings.Builder, s string) (int, error) {
	if s == "" {
		return 0, fmt.Errorf("%w command: a backslash at the end", ErrInvalid)
	}
	switch s[0] {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'x':
		if len(s) < 3 {
			return 0, fmt.Errorf("%w command: \\x needs two digits", ErrInvalid)
		}
		c, err := strconv.ParseUint(s[1:3], 16, 8)
		if err != nil {
			return 0, fmt.Errorf("%w command: \\x%s", ErrInvalid, Quote(s[1:3]))
		}
		b.WriteByte(byte(c))
		return 3, nil
	default:
		b.WriteByte(s[0])
	}
	return 1, nil
}
