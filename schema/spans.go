package schema

// SpanOf is the number of the span of time of a length in milliseconds, counted from 1970-01-01T00:00Z, that an instant
// in Unix milliseconds lies in; it rounds down, also before 1970.
func SpanOf(millis, length int64) int64 {
	n := millis / length
	if millis%length < 0 {
		n--
	}
	return n
}
