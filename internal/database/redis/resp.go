package redis

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/database"
	"skerry/internal/load"
)

// errProtocol is a reply that is not RESP2, https://redis.io/docs/reference/protocol-spec/.
var errProtocol = errors.New("invalid redis reply")

// maxBulk is the longest string that Redis handles by default (proto-max-bulk-len).
const maxBulk = 512 << 20

// Kinds of element.
const (
	kindStatus = '+'
	kindError  = '-'
	kindInt    = ':'
	kindBulk   = '$'
	kindArray  = '*'
)

type element struct {
	kind byte
	text []byte // of a status, an error or a bulk string
	n    int64  // an integer, or how many elements an array has; -1: nil
}

// parseElement reads the element at pos and returns the next position, or false for an incomplete element.
func parseElement(buf []byte, pos int) (e element, next int, ok bool, err error) {
	end := bytes.IndexByte(buf[pos:], '\n')
	if end < 0 {
		if len(buf)-pos > 64<<10 {
			return e, pos, false, fmt.Errorf("%w: a line without an end", errProtocol)
		}
		return e, pos, false, nil
	}
	end += pos
	if end < pos+2 || buf[end-1] != '\r' {
		return e, pos, false, fmt.Errorf("%w: %.40q", errProtocol, buf[pos:end+1])
	}
	e.kind, e.text, next = buf[pos], buf[pos+1:end-1], end+1
	switch e.kind {
	case kindStatus, kindError:
		return e, next, true, nil
	case kindInt, kindBulk, kindArray:
	default:
		return e, pos, false, fmt.Errorf("%w: %.40q", errProtocol, buf[pos:end+1])
	}
	if e.n, err = parseNumber(e.text); err != nil {
		return e, pos, false, err
	}
	if e.kind == kindInt {
		return e, next, true, nil
	}
	if e.n < -1 || e.n > maxBulk {
		return e, pos, false, fmt.Errorf("%w: a length of %d", errProtocol, e.n)
	}
	e.text = nil
	if e.kind == kindBulk && e.n >= 0 {
		stop := next + int(e.n)
		if len(buf) < stop+2 {
			return e, pos, false, nil
		}
		if buf[stop] != '\r' || buf[stop+1] != '\n' {
			return e, pos, false, fmt.Errorf("%w: a string longer than its length %d", errProtocol, e.n)
		}
		e.text, next = buf[next:stop:stop], stop+2
	}
	return e, next, true, nil
}

// parseShortBulk is parseElement for complete strings of at most 9999 bytes, at a quarter of its cost.
func parseShortBulk(buf []byte, pos int) (text []byte, next int, ok bool) {
	if pos >= len(buf) || buf[pos] != kindBulk {
		return nil, pos, false
	}
	n, i := 0, pos+1
	for ; i < len(buf) && i < pos+5 && buf[i]-'0' <= 9; i++ {
		n = 10*n + int(buf[i]-'0')
	}
	from := i + 2
	to := from + n
	if i == pos+1 || to+2 > len(buf) || buf[i] != '\r' || buf[i+1] != '\n' || buf[to] != '\r' || buf[to+1] != '\n' {
		return nil, pos, false
	}
	return buf[from:to:to], to + 2, true
}

// parseNumber is strconv.ParseInt for bytes, without allocation.
func parseNumber(b []byte) (int64, error) {
	digits, negative := b, false
	if len(b) > 0 && b[0] == '-' {
		digits, negative = b[1:], true
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, fmt.Errorf("%w: %.40q is not a number", errProtocol, b)
	}
	var n int64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, fmt.Errorf("%w: %.40q is not a number", errProtocol, b)
		}
		n = n*10 + int64(d-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}

func appendArray(b []byte, n int) []byte {
	b = append(b, kindArray)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '\r', '\n')
}

func appendBulk[T string | []byte](b []byte, word T) []byte {
	b = append(b, kindBulk)
	b = strconv.AppendInt(b, int64(len(word)), 10)
	b = append(b, '\r', '\n')
	b = append(b, word...)
	return append(b, '\r', '\n')
}

func appendCommand(b []byte, words ...string) []byte {
	b = appendArray(b, len(words))
	for _, w := range words {
		b = appendBulk(b, w)
	}
	return b
}

// classMoved is the class of operations with too many redirects. Errors from Redis have its words in lower case.
const classMoved = "moved"

// classifyReply converts an error reply. Redis has not executed the command.
func classifyReply(addr string, text []byte) error {
	word, _, _ := strings.Cut(string(text), " ")
	class := database.ClassOther
	if word != "ERR" && word != "" && word == strings.ToUpper(word) {
		class = strings.ToLower(word)
	}
	return load.Failed(class, addr, errors.New(string(text)))
}
