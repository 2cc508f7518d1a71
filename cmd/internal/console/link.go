package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Share says how dashboards are shown to others. All fields are required.
type Share struct {
	// URL is where others reach the handler of Shared, such as http://desk.internal:8200, without a / at its end.
	URL string
	// Secret signs the links. Whoever knows it can make some. It depends on the API key, so that those of another key
	// hold no longer.
	Secret []byte
	// Admit says whether one more request may be answered now.
	Admit func(now time.Time) bool
}

// A link is for one dashboard until an instant: 8 bytes with that in seconds, 16 bytes that stand for the dashboard,
// and 32 bytes that sign both.
const (
	linkBoard = 8
	linkSign  = linkBoard + 16
	linkBytes = linkSign + sha256.Size
)

// linkDays are for how many days a link can be made.
var linkDays = []int{1, 7, 30, 90}

func (s *Share) mac(purpose, text string) []byte {
	h := hmac.New(sha256.New, s.Secret)
	h.Write([]byte(purpose + "\x00" + text))
	return h.Sum(nil)
}

// board stands for a dashboard's file in a link. It does not tell the path.
func (s *Share) board(file string) []byte { return s.mac("dashboard", file)[:linkSign-linkBoard] }

// token is what a link to a dashboard's file has.
func (s *Share) token(file string, until time.Time) string {
	token := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	token = append(token, s.board(file)...)
	return base64.RawURLEncoding.EncodeToString(append(token, s.mac("link", string(token))...))
}

var (
	errNoLink  = errors.New("this link leads to nothing")
	errExpired = errors.New("this link has expired; who sent it can make another one")
)

// read returns what stands for the dashboard of a token that is signed and has not expired at now.
func (s *Share) read(token string, now time.Time) ([]byte, error) {
	all, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(all) != linkBytes || !hmac.Equal(all[linkSign:], s.mac("link", string(all[:linkSign]))) {
		return nil, errNoLink
	}
	if !now.Before(time.Unix(int64(binary.BigEndian.Uint64(all)), 0)) {
		return nil, errExpired
	}
	return all[linkBoard:linkSign], nil
}

// A linkView is the form that makes a link to a dashboard, or the link.
type linkView struct {
	File  string
	Days  []choice
	Link  string // empty before
	Until string // the last day of the link, or when it ends
	Wrong string
}

func newLinkView(file string) *linkView {
	v := &linkView{File: file}
	for _, days := range linkDays {
		text := fmt.Sprintf("%d days", days)
		if days == 1 {
			text = "1 day"
		}
		v.Days = append(v.Days, choice{Value: strconv.Itoa(days), Text: text, Chosen: days == 7})
	}
	return v
}

// link makes a link that shows one dashboard to others.
func (c *Console) link(w http.ResponseWriter, r *http.Request) {
	v := newLinkView(r.PostFormValue("file"))
	d, err := c.find(v.File)
	days, _ := strconv.Atoi(r.PostFormValue("days"))
	switch {
	case c.Share == nil:
		v.Wrong = "The console was started without --share."
	case err != nil:
		v.Wrong = err.Error()
	case !slices.Contains(linkDays, days):
		v.Wrong = "A link is for 1, 7, 30 or 90 days."
	default:
		until := c.Now().Add(time.Duration(days) * 24 * time.Hour)
		v.Link = c.Share.URL + "/share/" + c.Share.token(d.file, until)
		v.Until = dayText(until) + until.Format(", 15:04 MST")
	}
	c.render(w, "link", v)
}
