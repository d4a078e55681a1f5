/* interlock for C, and for every language that calls C: JSON texts in, JSON texts out. */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function takes texts that end with a zero byte and returns a status. It sets *answer to a
 * text that interlock_free() gives back, also where it fails: then it is an object
 *   {"format": "interlock-error/1", "message": "...", "diagnostics": [{"file": "scenario",
 *    "line": 3, "path": "/training/schedule", "message": "...", "hint": "..."}]}
 * `answer` may be NULL where only the status counts.
 *
 * `options` is NULL or an object with some of {"file": "scenarios/own.json", "set":
 * ["parallel.pipeline=8"], "threads": 4, "engine": "simgrid"}: see interlock::Options of
 * interlock.h, whose words on threads and on what is never done hold here, too.
 */
#ifndef INTERLOCK_C_H
#define INTERLOCK_C_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define INTERLOCK_C_API __attribute__((visibility("default")))
#else
#define INTERLOCK_C_API
#endif

/* Statuses: all is well; interlock is wrong; the text is wrong; memory ran out, without an answer.
 */
#define INTERLOCK_OK 0
#define INTERLOCK_INTERNAL_ERROR 1
#define INTERLOCK_ERROR 2
#define INTERLOCK_NO_MEMORY 3

/* Returns "0.2.0". */
INTERLOCK_C_API const char* interlock_version(void);

/* Gives a text back; NULL is allowed. */
INTERLOCK_C_API void interlock_free(char* text);

/* Reads a scenario without running it: {"format": "interlock-check/1", "scenarios": 1}. */
INTERLOCK_C_API int interlock_check(const char* scenario, const char* options, char** answer);

/* Simulates a scenario: "interlock-result/1"; of one with a "sweep", a list of them. */
INTERLOCK_C_API int interlock_simulate(const char* scenario, const char* options, char** answer);

/* Draws the timeline of a scenario: the text of a picture in SVG. */
INTERLOCK_C_API int interlock_svg(const char* scenario, const char* options, char** answer);

/* Makes a page of all scenarios of a text: HTML. */
INTERLOCK_C_API int interlock_report_html(const char* scenario, const char* options, char** answer);

/* Searches the plans of a scenario: "interlock-search/1". */
INTERLOCK_C_API int interlock_search(const char* scenario, const char* options, char** answer);

/* Plans a training: "interlock-plan/1". `question` is an object with the members of
 * interlock::PlanQuestion: {"model": "llama-3-8b", "machines": ["dgx-h100"], "devices": [8, 64],
 * "tokens": 1e12}. */
INTERLOCK_C_API int interlock_plan(const char* question, const char* options, char** answer);

/* Explains what limits a step: "interlock-explanation/1". */
INTERLOCK_C_API int interlock_explain(const char* scenario, const char* options, char** answer);

#ifdef __cplusplus
}
#endif

#endif /* INTERLOCK_C_H */
