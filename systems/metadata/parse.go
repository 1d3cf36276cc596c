package metadata

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Usage summarises the protocol, one line per operation.
const Usage = `ls [-l] [-n LIMIT] [-a NAME] PATH      list a directory; -a: entries after NAME
stat PATH                              attributes of an entry
find [-name PATTERN] [-type d|f|v] [-maxdepth N] [-n LIMIT] [-a PATH] PATH
read PATH                              content of a file
mkdir [-p] [-m MODE] PATH              -p: with missing parents; accept an existing directory
rmdir PATH                             remove an empty directory
create [-m MODE] PATH                  create an empty file
write [-x] [-m MODE] PATH TEXT         replace a file's content; -x: fail if the file exists
rm [-r] PATH                           remove a file; -r: or a directory with its content
mv [-f] FROM TO                        -f: replace a file or an empty directory
chmod MODE PATH                        MODE in octal digits
touch [-t TIME] PATH                   TIME as 2006-01-02T15:04:05Z
delegate PATH SERVER[,SERVER...]       move a directory with its content to a server
adopt PATH                             make a virtual directory physical and empty
`

// Parse parses and checks a command of the text protocol: "mkdir -p /a/b". Quote quotes names with spaces or quotes.
func Parse(line string) (Command, error) {
	c := Command{MaxDepth: -1}
	name, rest, _, err := cutWord(line)
	if err != nil {
		return c, err
	}
	for o := List; o <= last; o++ {
		if opNames[o] == name && !o.Internal() {
			c.Op = o
		}
	}
	if c.Op == Invalid {
		return c, fmt.Errorf("%w command %s: one of %s", ErrInvalid, Quote(shorten(name)), strings.Join(opNames[1:Adopt+1], ", "))
	}
	if rest, err = c.parseOptions(rest); err != nil {
		return c, err
	}
	if err = c.parseOperands(rest); err != nil {
		return c, err
	}
	return c, c.Check()
}

func (c *Command) parseOptions(line string) (rest string, err error) {
	for {
		option, behind, found, err := cutWord(line)
		if err != nil || !found || option == "" || option[0] != '-' || line[strings.IndexAny(line, "-\"'\\")] != '-' {
			return line, err
		}
		line = behind
		if option == "--" {
			return line, nil
		}
		if c.setFlag(option) {
			continue
		}
		value, behind, found, err := cutWord(line)
		if err != nil {
			return line, err
		}
		if known, err := c.setValue(option, value); err != nil || !known {
			if err == nil {
				err = fmt.Errorf("%w option %s of %s", ErrInvalid, Quote(option), c.Op)
			}
			return line, err
		}
		if !found {
			return line, fmt.Errorf("%w command: %s needs a value", ErrInvalid, option)
		}
		line = behind
	}
}

func (c *Command) setFlag(option string) bool {
	var at *bool
	switch {
	case c.Op == List && option == "-l":
		at = &c.Long
	case c.Op == Mkdir && option == "-p":
		at = &c.Parents
	case c.Op == Remove && option == "-r":
		at = &c.Recursive
	case c.Op == Move && option == "-f":
		at = &c.Replace
	case c.Op == Write && option == "-x":
		at = &c.Exclusive
	default:
		return false
	}
	*at = true
	return true
}

func (c *Command) setValue(option, value string) (known bool, err error) {
	page := c.Op == List || c.Op == Find
	switch {
	case page && option == "-n":
		if c.Limit, err = strconv.Atoi(value); err != nil || c.Limit < 1 {
			return true, fmt.Errorf("%w limit %s: 1 to %d", ErrInvalid, Quote(value), MaxLimit)
		}
	case page && option == "-a":
		c.After = value
	case (c.Op == Mkdir || c.Op == Create || c.Op == Write) && option == "-m":
		c.Mode, err = parseMode(value)
	case c.Op == Touch && option == "-t":
		t, problem := time.Parse(time.RFC3339Nano, value)
		if problem != nil {
			return true, fmt.Errorf("%w time %s: use the form 2006-01-02T15:04:05Z", ErrInvalid, Quote(value))
		}
		c.Time = t.UnixNano()
	case c.Op == Find && option == "-name":
		c.Pattern = value
	case c.Op == Find && option == "-type":
		c.Kind, err = parseKind(value)
	case c.Op == Find && option == "-maxdepth":
		if c.MaxDepth, err = strconv.Atoi(value); err != nil || c.MaxDepth < 0 {
			return true, fmt.Errorf("%w depth %s", ErrInvalid, Quote(value))
		}
	default:
		return false, nil
	}
	return true, err
}

func (c *Command) parseOperands(line string) error {
	var mode, text string
	var into []*string
	switch c.Op {
	case Move:
		into = []*string{&c.Path, &c.To}
	case Chmod:
		into = []*string{&mode, &c.Path}
	case Write:
		into = []*string{&c.Path, &text}
	case Delegate:
		into = []*string{&c.Path, &c.Owner}
	default:
		into = []*string{&c.Path}
	}
	for _, s := range into {
		w, rest, found, err := cutWord(line)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w command: %s needs %d operands", ErrInvalid, c.Op, len(into))
		}
		*s, line = w, rest
	}
	if strings.Trim(line, " \t") != "" {
		return fmt.Errorf("%w command: extra words after %s; quote names with spaces", ErrInvalid, Quote(shorten(*into[len(into)-1])))
	}
	c.Path = trimSlash(c.Path)
	if c.Op == Move {
		c.To = trimSlash(c.To)
	}
	if c.Op == Write {
		c.Data = []byte(text)
	}
	if c.Op == Chmod {
		var err error
		c.Mode, err = parseMode(mode)
		return err
	}
	return nil
}

func trimSlash(path string) string {
	if len(path) > 1 {
		return strings.TrimSuffix(path, "/")
	}
	return path
}

func parseMode(s string) (uint16, error) {
	m, err := strconv.ParseUint(s, 8, 16)
	if err != nil || m > MaxMode {
		return 0, fmt.Errorf("%w mode %s: octal digits up to %o", ErrInvalid, Quote(s), MaxMode)
	}
	return uint16(m), nil
}

func parseKind(s string) (Kind, error) {
	switch s {
	case "d":
		return Directory, nil
	case "f":
		return File, nil
	case "v":
		return Virtual, nil
	}
	return 0, fmt.Errorf("%w type %s: d, f or v", ErrInvalid, Quote(s))
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

func (c Command) String() string {
	var b strings.Builder
	b.WriteString(c.Op.String())
	option := func(set bool, words ...string) {
		if set {
			b.WriteByte(' ')
			b.WriteString(strings.Join(words, " "))
		}
	}
	option(c.Parents, "-p")
	option(c.Recursive, "-r")
	option(c.Replace, "-f")
	option(c.Exclusive, "-x")
	option(c.Long, "-l")
	option(c.Limit > 0, "-n", strconv.Itoa(c.Limit))
	option(c.After != "", "-a", Quote(c.After))
	option(c.Pattern != "", "-name", Quote(c.Pattern))
	if c.Kind != 0 {
		option(true, "-type", c.Kind.String()[:1])
	}
	option(c.Op == Find && c.MaxDepth >= 0, "-maxdepth", strconv.Itoa(c.MaxDepth))
	mode := strconv.FormatUint(uint64(c.Mode), 8)
	option(c.Mode != 0 && c.Op != Chmod, "-m", mode)
	option(c.Op == Touch && c.Time != 0, "-t", time.Unix(0, c.Time).UTC().Format(time.RFC3339Nano))
	option(c.Op == Chmod, mode)
	option(true, Quote(c.Path))
	option(c.Op == Move, Quote(c.To))
	option(c.Op == Delegate, Quote(c.Owner))
	option(c.Op == Write, Quote(string(c.Data)))
	return b.String()
}

// Quote formats a word for Parse: unchanged if possible, otherwise in double quotes with \n, \t, \", \\ and \xHH.
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

// cutWord cuts the first word from a line. A word ends at a space outside quotes. Inside ” all characters are literal;
// elsewhere a backslash escapes. found is false at the end of the line.
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
		return "", "", fmt.Errorf("%w command: missing closing %c", ErrInvalid, quote)
	}
	return b.String(), "", nil
}

func writeEscape(b *strings.Builder, s string) (int, error) {
	if s == "" {
		return 0, fmt.Errorf("%w command: trailing backslash", ErrInvalid)
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
