//! The routes of the page with their permitted uses. A route is added together with its use, and the gate decides by this table.

use std::{collections::HashMap, sync::Arc};

use axum::{Router, http::Method, routing::MethodRouter};

use super::hub::Hub;

/// The permitted use of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteUse {
    /// Everybody, also before the login.
    Everybody,
    /// Readers and operators.
    Reader,
    /// Operators. The route changes the lab.
    Operator,
}

impl RouteUse {
    /// Returns the word for it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Everybody => "everybody",
            Self::Reader => "reader",
            Self::Operator => "operator",
        }
    }
}

/// Routes that are being added.
pub(super) struct Routes {
    router: Router<Arc<Hub>>,
    table: RouteTable,
}

/// The permitted uses of routes, by method and path.
#[derive(Debug, Clone, Default)]
pub(super) struct RouteTable(HashMap<(Method, &'static str), RouteUse>);

impl Routes {
    /// Creates a table without routes.
    pub(super) fn new() -> Self {
        Self {
            router: Router::new(),
            table: RouteTable::default(),
        }
    }

    /// Adds a page that readers get.
    pub(super) fn route(self, path: &'static str, handler: MethodRouter<Arc<Hub>>) -> Self {
        self.add(Method::GET, path, RouteUse::Reader, handler)
    }

    /// Adds a page that everybody gets, also before the login.
    pub(super) fn public(self, path: &'static str, handler: MethodRouter<Arc<Hub>>) -> Self {
        self.add(Method::GET, path, RouteUse::Everybody, handler)
    }

    /// Adds a form of the login.
    pub(super) fn account(
        self,
        path: &'static str,
        route_use: RouteUse,
        handler: MethodRouter<Arc<Hub>>,
    ) -> Self {
        self.add(Method::POST, path, route_use, handler)
    }

    /// Adds an action, which changes the lab.
    pub(super) fn action(self, path: &'static str, handler: MethodRouter<Arc<Hub>>) -> Self {
        self.add(Method::POST, path, RouteUse::Operator, handler)
    }

    fn add(
        mut self,
        method: Method,
        path: &'static str,
        route_use: RouteUse,
        handler: MethodRouter<Arc<Hub>>,
    ) -> Self {
        self.table.0.insert((method, path), route_use);
        self.router = self.router.route(path, handler);
        self
    }

    /// Returns the router, and the table for the gate.
    pub(super) fn finish(self) -> (Router<Arc<Hub>>, RouteTable) {
        (self.router, self.table)
    }
}

impl RouteTable {
    /// Returns the permitted use of a route. `None` when it is not in the table.
    pub(super) fn find(&self, method: &Method, path: Option<&str>) -> Option<RouteUse> {
        // The page's answers to HEAD are those to GET, without their content.
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let found = self
            .0
            .iter()
            .find(|((known, pattern), _)| known == method && Some(*pattern) == path);
        found.map(|(_, route_use)| *route_use)
    }

    /// Returns every route: method, path and use, sorted.
    pub(super) fn rows(&self) -> Vec<[&str; 3]> {
        let rows = self.0.iter();
        let mut rows: Vec<[&str; 3]> = rows
            .map(|((method, path), route_use)| [method.as_str(), *path, route_use.as_str()])
            .collect();
        rows.sort_unstable();
        rows
    }
}
