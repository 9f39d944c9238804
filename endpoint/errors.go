package endpoint

import "strings"

// several is one line of several causes; errors.Is and errors.As find each of them.
type several []error

// join makes one error of those that are not nil.
func join(errs ...error) error {
	var s several
	for _, err := range errs {
		if err != nil {
			s = append(s, err)
		}
	}
	switch len(s) {
	case 0:
		return nil
	case 1:
		return s[0]
	default:
		return s
	}
}

// Error puts the causes into one line.
func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the causes.
func (s several) Unwrap() []error { return s }
