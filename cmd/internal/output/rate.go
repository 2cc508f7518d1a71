package output

import (
	"math"
	"strconv"
)

// mostOfPercent tell the rate of up to a million million runs from 0 and from 1.
const mostOfPercent = 10

// RateText is a rate in percent with at most so many decimals, or as many more as tell it from none and from all:
// 0.9996 is not 100%. It rounds a half up, as the console's script does, so that a tip and a table say the same.
func RateText(rate float64, decimals int) string {
	for ; ; decimals++ {
		percent := math.Round(rate*math.Pow10(decimals+2)) / math.Pow10(decimals)
		if decimals == mostOfPercent || (percent != 0 || rate == 0) && (percent != 100 || rate == 1) {
			return strconv.FormatFloat(percent, 'f', -1, 64) + "%"
		}
	}
}
