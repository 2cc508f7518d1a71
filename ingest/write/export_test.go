package write

// WithToken makes the tokens of a writer those of any other with the same name.
func WithToken(w *Writer, name string) *Writer {
	w.name = name
	return w
}
