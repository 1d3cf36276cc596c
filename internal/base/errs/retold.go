// Package errs makes errors that say in other words what is known under a name: one that
// another process told as text, or one whose text was put differently.
package errs

// As is an error with a text that is err to errors.Is and errors.As; err may be nil.
func As(text string, err error) error { return &retold{text: text, err: err} }

type retold struct {
	text string
	err  error
}

func (r *retold) Error() string { return r.text }
func (r *retold) Unwrap() error { return r.err }
