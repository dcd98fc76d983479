//! The API: everything the timeline can do, for any client, over HTTP.
