package client

import (
	"context"
	"errors"
	"iter"
)

// Pages asks for every page of an answer, one after another, beginning at q.Cursor. A Limit of 0 is MaxLimit. All pages
// have the same asOf. The iteration ends after the last page, with the first error, or when the loop does; nothing is
// asked ahead.
func (c *Client) Pages(ctx context.Context, q Query) iter.Seq2[*Response, error] {
	if q.Limit == 0 {
		q.Limit = MaxLimit
	}
	return func(yield func(*Response, error) bool) {
		q := q // a second iteration begins at the same page
		for {
			page, err := c.Query(ctx, q)
			if err == nil && page.Cursor != "" && page.Cursor == q.Cursor {
				err = errors.New("the server gives the same cursor again")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) || page.Cursor == "" {
				return
			}
			q.Cursor = page.Cursor
		}
	}
}
