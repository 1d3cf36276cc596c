package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"skerry/internal/base/advice"
)

// NotesSchema versions notes.json.
const NotesSchema = "skerry/notes/v1"

const notesFile = "notes.json"

// Notes is notes.json: what people wrote down about a run. It may be changed at any time,
// while the run goes on too.
type Notes struct {
	Schema string `json:"schema"`
	// Revision counts the changes; who changes notes names the one that they had read.
	Revision int       `json:"revision"`
	Changed  time.Time `json:"changed,omitzero"`
	Note     string    `json:"note,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
}

// Errors of notes.
var (
	// ErrNotes says that notes are too long, or tags are not words.
	ErrNotes = errors.New("invalid notes")
	// ErrChanged says that somebody else has changed the notes meanwhile.
	ErrChanged = errors.New("the notes were changed by somebody else meanwhile")
)

// Limits of notes: what is longer is a document of its own.
const (
	noteBytes = 64 << 10
	tagBytes  = 64
	tagsMost  = 32
)

// ReadNotes reads the notes of a run directory; none are no error.
func ReadNotes(dir string) (Notes, error) {
	var n Notes
	err := readJSON(filepath.Join(dir, notesFile), NotesSchema, &n)
	if errors.Is(err, fs.ErrNotExist) {
		return Notes{Schema: NotesSchema}, nil
	}
	if err != nil {
		return n, fmt.Errorf("reading the notes of %s: %w", dir, err)
	}
	return n, nil
}

// WriteNotes replaces the notes of a run directory, in one step. n.Revision is the one that
// the caller had read: ErrChanged says that it is not the present one. It returns the notes as
// they were written: without space around, every tag once.
func WriteNotes(dir string, n Notes) (Notes, error) {
	was, err := ReadNotes(dir)
	if err != nil && !errors.Is(err, ErrDamaged) { // what is damaged is replaced
		return n, err
	}
	if err == nil && was.Revision != n.Revision {
		return was, advice.With(ErrChanged, "read them again, then change them")
	}
	if n, err = n.normalize(); err != nil {
		return n, err
	}
	n.Schema, n.Revision, n.Changed = NotesSchema, n.Revision+1, time.Now()
	if err := writeJSON(filepath.Join(dir, notesFile), n); err != nil {
		return n, adviseDiskFull(err, dir)
	}
	return n, nil
}

func (n Notes) normalize() (Notes, error) {
	n.Note = strings.TrimSpace(n.Note)
	if len(n.Note) > noteBytes || !utf8.ValidString(n.Note) {
		return n, fmt.Errorf("%w: a note is text of %d KiB at most", ErrNotes, noteBytes>>10)
	}
	var tags []string
	for _, t := range n.Tags {
		t = strings.TrimSpace(t)
		if t == "" || slices.Contains(tags, t) {
			continue
		}
		if len(t) > tagBytes || !utf8.ValidString(t) || strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsGraphic(r) || r == ',' }) {
			return n, fmt.Errorf("%w: a tag is a word of %d bytes at most, without commas", ErrNotes, tagBytes)
		}
		tags = append(tags, t)
	}
	if len(tags) > tagsMost {
		return n, fmt.Errorf("%w: %d tags are more than %d", ErrNotes, len(tags), tagsMost)
	}
	n.Tags = tags
	return n, nil
}
