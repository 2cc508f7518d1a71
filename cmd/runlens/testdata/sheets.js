// Stand-ins for the services of Google that the script of deploy/recipes/google-sheets.md uses.
const { execFileSync } = require("node:child_process");

// A request of Apps Script blocks, so it is sent by a process of its own.
const send = `
  const [url, options] = JSON.parse(process.argv[1]);
  fetch(url, options).then(async (answer) => console.log(JSON.stringify(
    { status: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() })));`;

const UrlFetchApp = {
  fetch(url, { method, contentType, headers, payload, muteHttpExceptions }) {
    if (!muteHttpExceptions) throw new Error("a refusal would be thrown");
    const options = { method, headers: { ...headers, "Content-Type": contentType }, body: payload };
    const answer = JSON.parse(execFileSync(process.execPath, ["-e", send, JSON.stringify([url, options])]));
    return {
      getResponseCode: () => answer.status,
      getContentText: () => answer.text,
      getHeaders: () => answer.headers,
    };
  },
};
const Utilities = { sleep() {} };
const PropertiesService = { getScriptProperties: () => ({ getProperty: (name) => process.env[name] ?? null }) };

const written = {};
const sheet = {
  clear() {},
  getRange: (row, column, rows, columns) => {
    const fitting = (values) => {
      if (row !== 1 || column !== 1 || values.length !== rows || values.some((line) => line.length !== columns)) {
        throw new Error("the values do not fit the range");
      }
      return values;
    };
    return {
      setNumberFormats(formats) {
        written.formats = fitting(formats);
      },
      setValues(values) {
        written.values = fitting(values);
        console.log(JSON.stringify(written));
      },
    };
  },
};
const SpreadsheetApp = {
  getActiveSpreadsheet: () => ({ getSheetByName: () => null, insertSheet: () => sheet }),
};

