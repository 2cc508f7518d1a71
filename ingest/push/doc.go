// Package push stores the records that HTTP requests bring:
//
//  1. Read reads a body within bounds, whatever it unpacks to, and rejects each line that breaks a rule, as ingest
//     does.
//  2. A Lane stores records in a cell, one insert a table at a time. Those that come meanwhile are stored by the next
//     insert together, so that many small requests don't make a part each. A body of very many months is stored by
//     several inserts, so that it does not hold up those of others.
//  3. Store returns when ClickHouse has acknowledged all good lines of its body, by the same Writer as ingest has. So a
//     crash before loses nothing that was acknowledged, and whoever was not answered sends the same again, which
//     changes nothing twice.
//  4. Where an insert fails, all requests that it had fail: what of it is stored is not known, and no record can be
//     the cause, since each one was found right before.
package push
