// The statuses of the API's responses: handlers, metrics, the reference and the tools of load-testers derive from them.
// What each means to consumers is in api/reference/.

/** The statuses of refusals. */
export const problemStatuses = [400, 401, 403, 404, 405, 429, 500] as const
export type ProblemStatus = (typeof problemStatuses)[number]

/** Of every response; with 499 the client disconnected before it started. */
export type ResponseStatus = 200 | 204 | 304 | 308 | 499 | ProblemStatus
