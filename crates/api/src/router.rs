//! The router.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::ALLOW;
use axum::middleware::{Next, from_fn};
use axum::routing::{MethodFilter, MethodRouter};

use crate::dispatch::{front, handle, method_not_allowed, no_such_route};
use crate::endpoint::Endpoint;
use crate::routes;
use crate::service::{Pages, Service};

/// The start page if there is no studio.
const REFERENCE: &str = "/docs";

/// All routes, behind authentication.
pub(crate) fn router(service: &Arc<Service>, pages: Option<Pages>) -> Router {
    let endpoints: Vec<Arc<Endpoint>> = routes::all().into_iter().map(Arc::new).collect();
    let mut paths: BTreeMap<&'static str, (MethodRouter, Vec<Method>)> = BTreeMap::new();
    for endpoint in &endpoints {
        let (service, route) = (Arc::clone(service), Arc::clone(endpoint));
        let (methods, listed) = paths.entry(endpoint.path).or_default();
        let filter = MethodFilter::try_from(endpoint.method.clone()).expect("routes have common methods");
        let handler = move |request: Request| handle(Arc::clone(&service), Arc::clone(&route), request);
        *methods = std::mem::take(methods).on(filter, handler);
        listed.push(endpoint.method.clone());
    }
    let mut router = Router::new();
    for (path, (methods, listed)) in paths {
        let allowed = listed.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        router = router.route(path, refusing_others(methods, allowed));
    }
    let (pages, home) = pages.map_or((Router::new(), REFERENCE), |pages| (pages.routes, pages.home));
    router = routes::pages::add(router.merge(pages), &service.auth, home);
    let service = Arc::clone(service);
    router
        .fallback(no_such_route)
        .layer(from_fn(move |request: Request, next: Next| front(Arc::clone(&service), request, next)))
}

/// Adds a problem for all other methods.
pub(crate) fn refusing_others(methods: MethodRouter, allowed: impl Into<String>) -> MethodRouter {
    let allowed = allowed.into();
    methods.fallback(move |request: Request| {
        let allowed = allowed.clone();
        async move {
            let mut response = method_not_allowed(request).await;
            if let Ok(allowed) = allowed.parse() {
                response.headers_mut().insert(ALLOW, allowed);
            }
            response
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_a_summary() {
        for endpoint in routes::all() {
            let name = format!("{} {}", endpoint.method, endpoint.path);
            assert!(!endpoint.group.is_empty() && !endpoint.summary.is_empty(), "{name}");
            assert!(endpoint.summary.len() < 70 && !endpoint.summary.ends_with('.'), "{name}");
        }
    }
}
